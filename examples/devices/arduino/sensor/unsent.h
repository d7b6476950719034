// Unsent values, in flash: they survive a restart and a power cut.
#pragma once
#include <LittleFS.h>

/** Values being sent are in one file; new values go into the other. */
class Unsent {
 public:
  /** Keeps a value, as JSON. If there is no space, the older half is lost. */
  void add(const String &value) {
    File file = LittleFS.open(waiting, "a");
    if (file && file.size() + value.length() > maxBytes) {
      file.close();
      if (LittleFS.exists(sending)) Serial.println("no room, the oldest values are lost");
      rotate();
      file = LittleFS.open(waiting, "a");
    }
    if (!file) {
      Serial.println("the flash cannot be written");
      return;
    }
    if (file.size() > 0) file.print(",");
    file.print(value);
    // LittleFS writes it to flash when the file is closed: all of it, or nothing.
    file.close();
  }

  /** The oldest values as a JSON array; empty if there are none. */
  String oldest() {
    if (!LittleFS.exists(sending)) {
      if (!LittleFS.exists(waiting)) return "";
      rotate();
    }
    File file = LittleFS.open(sending, "r");
    String values = "[" + file.readString() + "]";
    file.close();
    return values;
  }

  /** Drops what oldest() gave. Call this only once the service has acknowledged it. */
  void forget() { LittleFS.remove(sending); }

 private:
  static constexpr const char *waiting = "/unsent.json";
  static constexpr const char *sending = "/sending.json";
  /** Of each file. It is sent from memory, and the service accepts messages of up to 64 KiB. */
  static constexpr size_t maxBytes = 6000;

  void rotate() {
    LittleFS.remove(sending);
    LittleFS.rename(waiting, sending);
  }
};
