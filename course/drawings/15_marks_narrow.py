"""Where an induction head must look, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

draw_table = import_module("course.drawings.15_marks").draw_table
sheet = Sheet(330, NARROW)
LEFT, LOW, WIDE = 78, 48, 54
draw_table(sheet, LEFT, LOW, WIDE, 14)
[query] = sheet.row_of_tokens(12, LOW + 5, ["a"], 42, dark=0, size=14)
sheet.arrow(query, (LEFT, query.right[1]))
earlier, after = LEFT + 1.5 * WIDE, LEFT + 2.5 * WIDE
over = [(earlier, 286), (after, 286)]
sheet.arrow((earlier, 262), (after, 262), via=over, width=2.2)
sheet.label(earlier - 4, 306, "earlier a", align="right", size=13)
sheet.label(after + 4, 306, "after it: t", align="left", size=13)
sheet.label(LEFT + 2.5 * WIDE, 24, "rows: queries, columns: keys", size=13)
