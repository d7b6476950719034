"""Unsent values, in a file. For Python and MicroPython."""

import os


class Unsent:
    """One JSON text a line, oldest first. The file survives a restart, and never exceeds `max_bytes`."""

    def __init__(self, path, max_bytes):
        self.path = path
        self.max_bytes = max_bytes
        self.given = 0
        open(path, "a").close()
        self._drop(0)

    def add(self, line):
        """Keeps one more. If there is no space, the oldest ones are lost."""
        while os.stat(self.path)[6] + len(line) + 1 > self.max_bytes:
            print("no room, the oldest values are lost")
            self._drop(50)
        with open(self.path, "a") as file:
            file.write(line + "\n")
            write_through(file)

    def oldest(self, most):
        """The oldest ones, at most `most`."""
        lines = []
        with open(self.path) as file:
            for line in file:
                if len(lines) == most:
                    break
                lines.append(line[:-1])
        self.given = len(lines)
        return lines

    def forget(self):
        """Drops what oldest() gave. Call this only once the service has acknowledged it."""
        self._drop(self.given)

    def _drop(self, count):
        """Copies the rest and renames the copy: after a power cut there is one file or the other."""
        with open(self.path) as file, open(self.path + ".new", "w") as kept:
            for number, line in enumerate(file):
                # A line without its end was truncated while it was written.
                if number >= count and line.endswith("\n"):
                    kept.write(line)
            write_through(kept)
        os.rename(self.path + ".new", self.path)
        self.given = max(0, self.given - count)


def write_through(file):
    file.flush()
    # MicroPython's file systems write when the file is closed.
    if hasattr(os, "fsync"):
        os.fsync(file.fileno())
