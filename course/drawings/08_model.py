"""The Transformer: L blocks on each side, and the arrows of cross-attention."""

from course.sheet import Sheet

sheet = Sheet(430)
LEFT, RIGHT, WIDE = 80, 440, 200  # the columns of encoder and decoder
columns = []
for x, sentence, name, shape in (
    (LEFT, "the black cow sleeps .", "encoder", "(S, D)"),
    (RIGHT, "[start] la vache noire dort .", "decoder", "(T, D)"),
):
    below = sheet.box(x, 14, sentence, width=WIDE, height=32)
    column = [sheet.box(x, 80, "embed + position", "projection", WIDE)]
    sheet.arrow(below, column[0])
    for number in range(2):
        y = 164 + 84 * number
        block = sheet.box(x, y, f"{name} block {number}", "attention", WIDE)
        side = "left" if x == LEFT else "right"
        sheet.arrow(column[-1], block, shape, side=side)
        column.append(block)
    columns.append(column)
encoder, decoder = columns
to_words = sheet.box(RIGHT, 332, "dense: a score per word", "projection", WIDE)
sheet.arrow(decoder[2], to_words, "(T, D)")
sheet.arrow(to_words.top, (RIGHT + WIDE / 2, 396))
sheet.label(RIGHT + WIDE / 2, 410, "la vache noire dort . [end]")

trunk = 360  # the encoder’s output goes up, over and into each decoder block
over = [(LEFT + WIDE / 2, 312), (trunk, 312), (trunk, decoder[1].left[1])]
sheet.arrow(encoder[2].top, decoder[1].left, via=over)
sheet.arrow((trunk, decoder[2].left[1]), decoder[2].left)
sheet.label(270, 326, "encoder’s output (S, D)")
sheet.label(trunk - 8, 226, "keys,\nvalues", align="right", size=11)
sheet.label(20, 225, "L = 2", align="left")
sheet.label(700, 225, "L = 2", align="right")
