import type { Access } from '../../api/devices.ts';

/** Makes a program, or a shell command, that sends a message as the device. */
type Write = (access: Access, message: string) => string;

const isSecure = ({ protocol }: Access) => ['mqtts', 'wss', 'https'].includes(protocol);
const isWebSocket = ({ protocol }: Access) => protocol.startsWith('ws');
export const isHttp = ({ protocol }: Access) => protocol === 'http' || protocol === 'https';
const topicOf = ({ deviceAuthUuid }: Access) => `devices/${deviceAuthUuid}/up/measurements`;

const shell: Write = (access, message) =>
  [
    `mosquitto_pub -h ${access.host} -p ${access.port}${isSecure(access) ? ' --tls-use-os-certs' : ''} -q 1`,
    `-u ${access.deviceAuthUuid}`,
    `-P ${access.deviceAuthToken}`,
    `-t ${topicOf(access)}`,
    `-m '${message}'`,
  ].join(' \\\n  ');

const python: Write = (access, message) => `# pip install paho-mqtt
import json, ssl
from paho.mqtt import publish

publish.single(
    "${topicOf(access)}",
    json.dumps(${message}),
    qos=1,
    hostname="${access.host}",
    port=${access.port},
    auth={"username": "${access.deviceAuthUuid}", "password": "${access.deviceAuthToken}"},${
      isSecure(access) ? '\n    tls={"cert_reqs": ssl.CERT_REQUIRED},' : ''
    }${isWebSocket(access) ? '\n    transport="websockets",' : ''}
)`;

const arduino: Write = (access, message) => `// Libraries: PubSubClient, WiFi (ESP32)
#include <WiFi${isSecure(access) ? 'ClientSecure' : ''}.h>
#include <PubSubClient.h>

WiFiClient${isSecure(access) ? 'Secure' : ''} network;
PubSubClient mqtt(network);

void setup() {
  WiFi.begin("your network", "its password");
  while (WiFi.status() != WL_CONNECTED) delay(100);${
    isSecure(access) ? '\n  network.setCACert(rootCertificate);  // of your server' : ''
  }
  mqtt.setServer("${access.host}", ${access.port});
}

void loop() {
  const char* user = "${access.deviceAuthUuid}";
  if (!mqtt.connected()) mqtt.connect(user, user, "${access.deviceAuthToken}");
  mqtt.publish("${topicOf(access)}",
               "${message.replaceAll('"', '\\"')}");
  mqtt.loop();
  delay(60000);
}`;

const microPython: Write = (access, message) => `# mpremote mip install umqtt.simple
import json
from umqtt.simple import MQTTClient

user = "${access.deviceAuthUuid}"
mqtt = MQTTClient(user, "${access.host}", port=${access.port}, user=user,
                  password="${access.deviceAuthToken}"${isSecure(access) ? ', ssl=True' : ''})
mqtt.connect()
mqtt.publish("${topicOf(access)}", json.dumps(${message}), qos=1)
mqtt.disconnect()`;

const inUrl = (host: string) => (host.includes(':') ? `[${host}]` : host);

/** Where measurements go: a topic, or a URL over HTTP. */
export function targetOf(access: Access): string {
  const { protocol, host, port } = access;
  if (!isHttp(access)) return topicOf(access);
  const isUsual = port === (protocol === 'https' ? 443 : 80);
  return `${protocol}://${inUrl(host)}${isUsual ? '' : `:${port}`}/${topicOf(access)}`;
}

const curl: Write = (access, message) =>
  [
    `curl -sS -u ${access.deviceAuthUuid}:${access.deviceAuthToken}`,
    `-H 'Content-Type: application/json'`,
    targetOf(access),
    `-d '${message}'`,
  ].join(' \\\n  ');

const pythonHttp: Write = (access, message) => `import json
from urllib.request import Request, urlopen

request = Request(
    "${targetOf(access)}",
    data=json.dumps(${message}).encode(),
    headers={
        "Authorization": "Bearer ${access.deviceAuthToken}",
        "Content-Type": "application/json",
    },
)
with urlopen(request, timeout=30) as answer:
    print(answer.read().decode())`;

const arduinoHttp: Write = (access, message) => `#include <WiFi.h>
#include <HTTPClient.h>

void setup() {
  WiFi.begin("your network", "its password");
  while (WiFi.status() != WL_CONNECTED) delay(100);
}

void loop() {
  HTTPClient http;
  http.begin("${targetOf(access)}"${isSecure(access) ? ', rootCertificate' : ''});
  http.setAuthorization("${access.deviceAuthUuid}", "${access.deviceAuthToken}");
  http.addHeader("Content-Type", "application/json");
  http.POST("${message.replaceAll('"', '\\"')}");  // 200: it is stored
  http.end();
  delay(60000);
}`;

const microPythonHttp: Write = (access, message) => `# mpremote mip install requests
import requests

answer = requests.post(
    "${targetOf(access)}",
    json=${message},
    headers={"Authorization": "Bearer ${access.deviceAuthToken}"},
)
print(answer.status_code, answer.text)
answer.close()`;

/** In the order in which they are offered. A new one is added here, to the lists below, and to the texts. */
export type SnippetName = 'shell' | 'python' | 'arduino' | 'microPython';
type Snippets = Partial<Record<SnippetName, Write>>;

const overMqtt: Snippets = { shell, python, arduino, microPython };
const overHttp: Snippets = {
  shell: curl,
  python: pythonHttp,
  arduino: arduinoHttp,
  microPython: microPythonHttp,
};

/** The snippets for the device's protocol: only Python's client supports MQTT over WebSockets. */
export function snippetsFor(access: Access): Snippets {
  if (isHttp(access)) return overHttp;
  return isWebSocket(access) ? { python } : overMqtt;
}

/** The key of the hint beside its name. */
export const hintOf = (access: Access, name: SnippetName) =>
  `snippet.hint.${isHttp(access) && name === 'shell' ? 'curl' : name}` as const;

/** Everything that a device needs, as a URL. */
export function qrText({ host, port, protocol, ...device }: Access): string {
  const { deviceAuthUuid: uuid, deviceAuthToken: token } = device;
  return `${protocol}://${uuid}:${encodeURIComponent(token)}@${inUrl(host)}:${port}`;
}
