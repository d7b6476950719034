// Files of the working directory in place of a board's flash.
#pragma once
#include <sys/stat.h>
#include <cerrno>
#include <memory>
#include <sstream>
#include <Arduino.h>

class File {
 public:
  explicit File(FILE *file = nullptr) : file(file, [](FILE *open) { if (open) fclose(open); }) {}
  explicit operator bool() const { return file != nullptr; }
  size_t size() const {
    struct stat status = {};
    fstat(fileno(file.get()), &status);
    return status.st_size;
  }
  size_t print(const String &text) { return fputs(text.c_str(), file.get()) < 0 ? 0 : text.length(); }
  String readString() {
    std::string text;
    for (int c; (c = fgetc(file.get())) != EOF;) text += (char)c;
    return text;
  }
  void close() { file.reset(); }

 private:
  std::shared_ptr<FILE> file;
};

struct HostFiles {
  bool begin(bool) { return true; }
  File open(const char *path, const char *mode) { return File(fopen(path + 1, mode)); }
  bool exists(const char *path) { return access(path + 1, F_OK) == 0; }
  bool remove(const char *path) { return unlink(path + 1) == 0; }
  bool rename(const char *from, const char *to) { return std::rename(from + 1, to + 1) == 0; }
};
inline HostFiles LittleFS;
