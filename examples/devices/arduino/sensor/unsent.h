// Values that wait to be sent, in flash: they outlive a restart and a power cut.
#pragma once
#include <LittleFS.h>

/** What is being sent is in a file of its own: what is measured meanwhile goes into the other one. */
class Unsent {
 public:
  /** Keeps a value, as JSON. Where there is no room, the older half is lost. */
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
    // LittleFS has it in the flash once it is closed: all of it, or nothing.
    file.close();
  }

  /** The oldest ones as a JSON array; empty where there are none. */
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

  /** Drops what oldest() gave. To be called once the service has acknowledged it, not before. */
  void forget() { LittleFS.remove(sending); }

 private:
  static constexpr const char *waiting = "/unsent.json";
  static constexpr const char *sending = "/sending.json";
  /** Of each file. It is sent from memory, and the service takes messages of 64 KiB. */
  static constexpr size_t maxBytes = 6000;

  void rotate() {
    LittleFS.remove(sending);
    LittleFS.rename(waiting, sending);
  }
};
