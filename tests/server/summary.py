"""Numbers of several runs as a table: medians, and how far the runs lie apart."""
import statistics


def spread(values):
    """Half the distance between the largest and the smallest value, in parts of the median."""
    return (max(values) - min(values)) / 2 / statistics.median(values)


def table(headings, rows):
    """Columns as wide as their widest cell; the first is text, the others are aligned to the right."""
    widths = [max(len(str(row[column])) for row in [headings, *rows]) for column in range(len(headings))]

    def line(cells):
        first, *others = (str(cell) for cell in cells)
        return "  ".join([first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:]))]).rstrip()

    return "\n".join([line(headings), line(["-" * width for width in widths]), *map(line, rows)])
