// Arduino's Client, as libraries use it.
#pragma once
#include <Arduino.h>

class IPAddress {};

class Client {
 public:
  virtual ~Client() {}
  virtual int connect(IPAddress address, uint16_t port) = 0;
  virtual int connect(const char *host, uint16_t port) = 0;
  virtual size_t write(const uint8_t *bytes, size_t size) = 0;
  virtual int available() = 0;
  virtual int read() = 0;
  virtual int read(uint8_t *bytes, size_t size) = 0;
  virtual void stop() = 0;
  virtual uint8_t connected() = 0;
};
