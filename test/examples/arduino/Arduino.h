// As much of Arduino's core as examples/devices/arduino needs, on a POSIX system: its logic is run, not its board.
#pragma once
#include <strings.h>
#include <unistd.h>
#include <chrono>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

using std::isinf;
using std::isnan;

class String {
 public:
  String(const char *text = "") : text(text) {}
  String(const std::string &text) : text(text) {}
  explicit String(int number) : text(std::to_string(number)) {}
  explicit String(unsigned int number) : text(std::to_string(number)) {}
  explicit String(unsigned long number) : text(std::to_string(number)) {}
  const char *c_str() const { return text.c_str(); }
  unsigned int length() const { return text.size(); }
  String &operator+=(char c) { return text += c, *this; }
  friend String operator+(const String &a, const String &b) { return a.text + b.text; }
  bool startsWith(const String &other) const { return text.rfind(other.text, 0) == 0; }
  bool endsWith(const String &end) const {
    return text.size() >= end.text.size() && text.compare(text.size() - end.text.size(), std::string::npos, end.text) == 0;
  }
  void remove(unsigned int at, unsigned int count) { text.erase(at, count); }
  int indexOf(const String &part) const { return (int)text.find(part.text); }
  int indexOf(char c, int from) const { return (int)text.find(c, from); }
  String substring(unsigned int from) const { return from > text.size() ? "" : text.substr(from); }
  String substring(unsigned int from, unsigned int to) const {
    return from > text.size() ? "" : text.substr(from, to - from);
  }
  void toLowerCase() {
    for (char &c : text) c = (char)tolower(c);
  }
  long toInt() const { return atol(c_str()); }

 private:
  std::string text;
};

inline uint32_t millis() {
  using namespace std::chrono;
  return (uint32_t)duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}
inline void delay(uint32_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
inline void yield() {}
inline long random(long from, long to) { return from + rand() % (to - from); }

struct HostSerial {
  void begin(unsigned long) {}
  size_t println(const String &line) {
    puts(line.c_str());
    fflush(stdout);
    return line.length() + 1;
  }
};
inline HostSerial Serial;
