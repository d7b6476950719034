export const help = `Runs simulated devices against a service and checks that it kept every measurement.

Usage: npm run simulate -- [options]

  --url URL         Where the service is (default http://127.0.0.1:8080). Devices
                    connect to the host and port that registering them answers.
  --devices N       How many devices, 1 to 10000 (default 100).
  --seconds S       How long they publish, up to 86400 (default 30). Ctrl-C ends it
                    earlier; what was acknowledged until then is still compared.
                    A second Ctrl-C stops at once and leaves everything behind.
  --rate R          Messages a second of each device, 0.01 to 100 (default 1).
                    A message carries two measurements, temperature and humidity.
  --protocol NAME   What devices speak: mqtt (3.1.1, the default), mqtt5, http (with long
                    polls; two connections each), or all (a third each).
  --account EMAIL   Log in to this account instead of registering a throw-away one.
                    The password is the first line of standard input, or asked for
                    where that is a terminal.
  --keep            Leave the account, the devices and the purpose in place. Without
                    it the run removes what it made.
  --insecure        Accept any TLS certificate, of the service and of its connectors.
                    (Better: NODE_EXTRA_CA_CERTS=ca.pem names one to trust.)
  --help            This text.

What happens: the account and the devices are registered, every device connects, a
purpose (examples/cold-room.json) is installed on all of them as a profile and each
device accepts it. Then they publish, with QoS 1 or a request each. At the end every acknowledged
measurement is looked for over GET /v2/measurements.

Exit status: 0 when all of them were there, 1 when one was missing, changed, doubled or
never sent, or when the run could not be done. 2 when an option is wrong.
`;
