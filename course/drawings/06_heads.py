"""Multi-head attention: project, split, attend H times, concatenate, mix."""

from course.sheet import Sheet

sheet = Sheet(430)
words = sheet.box(185, 12, "sentence", width=330, height=28)
attend = sheet.box(
    150, 190, "compare, softmax, average", "attention", 400, 46, stack=2
)
for middle, name, shape in (
    (230, "$X\\,W_q$", "(T, H, K)"),
    (350, "$X\\,W_k$", "(S, H, K)"),
    (470, "$X\\,W_v$", "(S, H, V)"),
):
    project = sheet.box(middle - 45, 80, name, "projection", 90)
    sheet.arrow((middle, 40), project)
    sheet.arrow(project.top, (middle, 190), f"split {shape}")
sheet.label(478, 60, "X (T, D)", align="left", size=11)
sheet.label(576, 220, "$\\times$ H heads", align="left")
join = sheet.box(270, 274, "concatenate", "data", 160)
sheet.arrow((350, 246), join, "outputs (T, H, V)")
mix = sheet.box(295, 346, "mix: $W_o$", "projection", 110)
sheet.arrow(join, mix, "(T, HV)")
sheet.arrow(mix.top, (350, 418), "output (T, D)")
