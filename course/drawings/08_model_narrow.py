"""The Transformer, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(470, NARROW)
LEFT, RIGHT, WIDE = 10, 206, 144  # the columns of encoder and decoder
columns = []
for x, sentence, name, shape in (
    (LEFT, "the black cow …", "encoder", "(S, D)"),
    (RIGHT, "[start] la vache …", "decoder", "(T, D)"),
):
    below = sheet.box(x, 14, sentence, width=WIDE, height=34, size=13)
    column = [sheet.box(x, 86, "embed + position", "projection", WIDE, size=13)]
    sheet.arrow(below, column[0])
    for number in range(2):
        y = 176 + 90 * number
        block = sheet.box(
            x, y, f"{name} block {number}", "attention", WIDE, size=13
        )
        side = "left" if x == LEFT else "right"
        sheet.arrow(column[-1], block, shape, side=side, size=12)
        column.append(block)
    columns.append(column)
encoder, decoder = columns
to_words = sheet.box(RIGHT, 356, "dense: scores", "projection", WIDE, size=13)
sheet.arrow(decoder[2], to_words, "(T, D)", side="right", size=12)
sheet.arrow(to_words.top, (RIGHT + WIDE / 2, 430))
sheet.label(RIGHT + WIDE / 2, 446, "la vache noire …", size=13)

trunk = 180  # the encoder’s output goes up, over and into each decoder block
over = [(LEFT + WIDE / 2, 330), (trunk, 330), (trunk, decoder[1].left[1])]
sheet.arrow(encoder[2].top, decoder[1].left, via=over)
sheet.arrow((trunk, decoder[2].left[1]), decoder[2].left)
sheet.label(LEFT, 350, "keys, values (S, D)", align="left", size=12)
