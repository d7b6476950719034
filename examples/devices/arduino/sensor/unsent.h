// Values that wait to be sent, in flash: they survive a restart and a power cut.
#pragma once
#include <LittleFS.h>

/** Values being sent have a file of their own; new values go into the other file meanwhile. */
class Unsent {
 public:
  /** Keeps a value, as JSON. Without room, it drops the older half. */
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
    // LittleFS writes to flash when the file is closed: everything, or nothing.
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

  /** Drops what oldest() returned. Call it only once the service has acknowledged that. */
  void forget() { LittleFS.remove(sending); }

 private:
  static constexpr const char *waiting = "/unsent.json";
  static constexpr const char *sending = "/sending.json";
  /** Largest size of each file. It is sent from memory, and the service takes messages of up to 64 KiB. */
  static constexpr size_t maxBytes = 6000;

  void rotate() {
    LittleFS.remove(sending);
    LittleFS.rename(waiting, sending);
  }
};
