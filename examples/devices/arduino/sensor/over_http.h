// Talks to the service over HTTP, on one connection that stays open. It needs no library.
#pragma once

class Service {
 public:
  /** The service's time in ms, from its newest answer; 0: there was none yet. */
  uint64_t timestamp = 0;

  bool askTime() { return ask("POST", "up/time", "{}"); }

  /** Whether these values can be dropped: they are stored, or never can be. */
  bool send(const String &values) { return ask("POST", "up/measurements", values); }

  bool answerProfile(const String &answer) { return ask("POST", "up/profile", answer); }

  /** Waits for a profile, and returns its identifier; empty: none came. False: the service is out of reach. */
  bool listen(uint32_t ms, String &profileId) {
    uint32_t seconds = ms / 1000 < 25 ? ms / 1000 : 25;
    if (!ask("GET", "down?wait=" + String(seconds) + "&topics=profile&after=" + after, "")) return false;
    profileId = foundProfile;
    return true;
  }

  /** Acknowledges what listen() returned, with the next poll. */
  void acknowledge() { after = foundAfter; }

 private:
  WiFiClient client;
  String after, foundAfter, foundProfile, foundTimestamp;

  bool ask(const char *method, const String &path, const String &body) {
    int status = exchange(method, path, body);
    if (status == 0) client.stop();
    if (foundTimestamp.length() > 0) timestamp = strtoull(foundTimestamp.c_str(), nullptr, 10);
    if (status != 200) Serial.println("answered: " + String(status));
    // 400: the service cannot read it, however often it is sent.
    return status == 200 || status == 400;
  }

  /** The status; 0: no complete answer. */
  int exchange(const char *method, const String &path, const String &body) {
    foundProfile = foundAfter = foundTimestamp = "";
    if (!client.connected() && !client.connect(serviceHost, servicePort)) return 0;
    client.print(String(method) + " /devices/" + deviceUuid + "/" + path + " HTTP/1.1\r\nHost: " + serviceHost +
                 "\r\nAuthorization: Bearer " + deviceToken + "\r\nContent-Type: application/json\r\n" +
                 "Content-Length: " + String(body.length()) + "\r\n\r\n" + body);
    String line;
    if (!readLine(line)) return 0;
    int status = line.substring(9, 12).toInt();
    size_t length = 0;
    do {
      if (!readLine(line)) return 0;
      line.toLowerCase();
      if (line.startsWith("content-length:")) length = line.substring(15).toInt();
    } while (line.length() > 0);
    return readBody(length) ? status : 0;
  }

  /** Keeps only what it searches for: a profile may be larger than the board's memory. */
  bool readBody(size_t length) {
    String tail;
    String *found = nullptr;
    while (length-- > 0) {
      int byte = readByte();
      if (byte < 0) return false;
      char c = (char)byte;
      if (found && (c == '"' || c == ',' || c == '}')) found = nullptr;
      if (found) *found += c;
      tail += c;
      if (tail.length() > 12) tail.remove(0, 1);
      if (tail.endsWith("\"pId\":\"")) found = &foundProfile;
      if (tail.endsWith("\"after\":\"")) found = &foundAfter;
      if (tail.endsWith("\"timestamp\":")) found = &foundTimestamp;
    }
    return true;
  }

  bool readLine(String &line) {
    line = "";
    for (;;) {
      int c = readByte();
      if (c < 0) return false;
      if (c == '\n') return true;
      if (c != '\r') line += (char)c;
    }
  }

  /** -1: no byte came for longer than a poll waits, or the connection ended. */
  int readByte() {
    uint32_t since = millis();
    while (client.available() == 0) {
      if (!client.connected() || millis() - since > 40000) return -1;
      delay(1);
    }
    return client.read();
  }
};
