// Copy this to secrets.h, beside the sketch. Do not share that file: it has the device's token.
#pragma once

#define OVER_MQTT 0  // 1: MQTT, with the library "MQTT" (arduino-mqtt, lwmqtt) by Joel Gaehwiler

const char wifiName[] = "…";
const char wifiPassword[] = "…";
const char serviceHost[] = "192.168.1.10";
const uint16_t servicePort = 8080;  // 1883 for MQTT
const char deviceUuid[] = "…";      // deviceAuthUuid
const char deviceToken[] = "…";     // deviceAuthToken
const uint32_t intervalMs = 60000;
