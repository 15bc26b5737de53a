"""Where a context enters: mixed into the queries and into the keys."""

from course.sheet import Sheet

sheet = Sheet(400)
sheet.box(45, 12, "frost      drink      tea      juice", width=630, height=30)
ask = sheet.box(60, 86, "$X\\,W_q$", "projection")
mean = sheet.box(215, 86, "average", "memory")
offer = sheet.box(370, 86, "$X\\,W_k$", "projection")
hand_over = sheet.box(550, 86, "$X\\,W_v$", "projection")
for box in (ask, mean, offer, hand_over):
    sheet.arrow((box.centre[0], 42), box)
sheet.label(126, 62, "$X$ (T, D)", align="left", size=11)
attend = sheet.box(45, 302, "compare, softmax, average", "attention", 630, 40)
mixes = [sheet.box(x, 200, "mix: gate λ", "norm", 110) for x in (60, 370)]
for project, mix, name in zip((ask, offer), mixes, "qk", strict=True):
    sheet.arrow(project, mix)
    sheet.arrow(mix.top, (mix.top[0], 302), f"$\\hat {name}$ (T, K)")
sheet.arrow(hand_over.top, (605, 302), "$v$ (T, V)")
sheet.arrow(mean, mixes[0].right, via=[(270, 219)])
sheet.arrow(mean, mixes[1].left, via=[(270, 219)])
sheet.label(219, 235, "$c\\,W_{cq}$ = (2, 1)", size=11)
sheet.label(321, 235, "$c\\,W_{ck}$ = (1, 2)", size=11)
sheet.label(278, 160, "context $c$ = (1, 2)", align="left", size=11)
sheet.label(107, 160, "drink: (1, 1)", align="right", size=11)
sheet.label(107, 268, "drink: (1.75, 1)", align="right", size=11)
sheet.arrow(attend.top, (360, 390), "output (T, V)")
