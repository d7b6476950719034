import type { Access } from '../../api/device.ts';

/** A program, or a line for a shell, that sends a message as the device. */
type Write = (access: Access, message: string) => string;

const isSecure = ({ protocol }: Access) => protocol === 'mqtts' || protocol === 'wss';
const isWebSocket = ({ protocol }: Access) => protocol.startsWith('ws');
const topicOf = ({ deviceAuthUuid }: Access) => `devices/${deviceAuthUuid}/up/measurements`;

const shell: Write = (access, message) =>
  [
    `mosquitto_pub -h ${access.host} -p ${access.port}${isSecure(access) ? ' --tls-use-os-certs' : ''} -q 1`,
    `-u ${access.deviceAuthUuid} -P ${access.deviceAuthToken}`,
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

/** In the order in which they are offered. Another way to send is a line here, and its name in the texts. */
export const snippets = { shell, python, arduino, microPython } as const satisfies Record<
  string,
  Write
>;
export type SnippetName = keyof typeof snippets;

/** Those that can speak the device's protocol: only Python's client speaks MQTT over WebSockets. */
export function snippetsFor(access: Access): SnippetName[] {
  return isWebSocket(access) ? ['python'] : (Object.keys(snippets) as SnippetName[]);
}

/** All that a device needs, as an address. */
export function qrText({ host, port, protocol, ...device }: Access): string {
  const { deviceAuthUuid: uuid, deviceAuthToken: token } = device;
  const name = host.includes(':') ? `[${host}]` : host;
  return `${protocol}://${uuid}:${encodeURIComponent(token)}@${name}:${port}`;
}
