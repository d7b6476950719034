// The network of the machine in place of a board's, by a socket. Hosts are IPv4 addresses.
#pragma once
#include <arpa/inet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "Client.h"

const int WIFI_STA = 1;
struct HostWiFi {
  void mode(int) {}
  void begin(const char *, const char *) {}
};
inline HostWiFi WiFi;

class WiFiClient : public Client {
 public:
  ~WiFiClient() override { stop(); }
  int connect(IPAddress, uint16_t) override { return 0; }
  int connect(const char *host, uint16_t port) override {
    stop();
    socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, host, &address.sin_addr);
    if (::connect(socket, (sockaddr *)&address, sizeof address) == 0) return 1;
    stop();
    return 0;
  }
  size_t write(const uint8_t *bytes, size_t size) override {
    size_t done = 0;
    while (done < size) {
      ssize_t sent = ::send(socket, bytes + done, size - done, MSG_NOSIGNAL);
      if (sent <= 0) break;
      done += sent;
    }
    return done;
  }
  size_t print(const String &text) { return write((const uint8_t *)text.c_str(), text.length()); }
  int available() override {
    int waiting = 0;
    return socket >= 0 && ioctl(socket, FIONREAD, &waiting) == 0 ? waiting : 0;
  }
  int read() override {
    uint8_t byte;
    return read(&byte, 1) == 1 ? byte : -1;
  }
  int read(uint8_t *bytes, size_t size) override {
    return available() > 0 ? (int)recv(socket, bytes, size, MSG_DONTWAIT) : 0;
  }
  void stop() override {
    if (socket >= 0) close(socket);
    socket = -1;
  }
  uint8_t connected() override {
    if (socket < 0) return 0;
    char byte;
    ssize_t got = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
  }

 private:
  int socket = -1;
};
