"""Values that wait to be sent, in a file. For Python and MicroPython."""

import os


class Unsent:
    """One JSON text a line, the oldest first. It survives a restart, and never exceeds `max_bytes`."""

    def __init__(self, path, max_bytes):
        self.path = path
        self.max_bytes = max_bytes
        self.given = 0
        open(path, "a").close()
        self._drop(0)

    def add(self, line):
        """Keeps one more value. Without room, it drops the oldest ones."""
        while os.stat(self.path)[6] + len(line) + 1 > self.max_bytes:
            print("no room, the oldest values are lost")
            self._drop(50)
        with open(self.path, "a") as file:
            file.write(line + "\n")
            write_through(file)

    def oldest(self, most):
        """The oldest values, at most `most`."""
        lines = []
        with open(self.path) as file:
            for line in file:
                if len(lines) == most:
                    break
                lines.append(line[:-1])
        self.given = len(lines)
        return lines

    def forget(self):
        """Drops what oldest() returned. Call it only once the service has acknowledged that."""
        self._drop(self.given)

    def _drop(self, count):
        """Writes the rest to a copy and renames it: after a power cut one of the two files is there."""
        with open(self.path) as file, open(self.path + ".new", "w") as kept:
            for number, line in enumerate(file):
                # A line without its end was cut off while it was written.
                if number >= count and line.endswith("\n"):
                    kept.write(line)
            write_through(kept)
        os.rename(self.path + ".new", self.path)
        self.given = max(0, self.given - count)


def write_through(file):
    file.flush()
    # MicroPython's file systems write only when the file is closed.
    if hasattr(os, "fsync"):
        os.fsync(file.fileno())
