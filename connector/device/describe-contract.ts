/** What firmware authors have to know beside the messages themselves. */
export const describeContract = `
Devices connect with MQTT 3.1.1 (or 3.1), or 5; the user name is the device's deviceAuthUuid, the password
its deviceAuthToken. What MQTT 5 adds is in docs/mqtt5.md: acknowledgements with reason codes, and limits.

A device publishes to its own \`devices/{uuid}/up/…\` and subscribes to its own
\`devices/{uuid}/down/…\` (\`down/#\` included), and nothing else: publishing elsewhere closes the
connection, subscribing elsewhere is answered 128.

An acknowledgement (PUBACK, PUBREC) means stored: it leaves after the transaction that holds the
message has committed. A message that was not acknowledged is to be sent again; the same measurement
sent again (same sense, ts and value) is stored once. What carries no time of its own cannot be told
from something new, so send \`ts\`.

What is wrong is kept as a rejection, said on \`down/errors\`, and acknowledged; the good items of the
same array are stored. Of one message the first 10 rejections are said one by one, and of one minute
the first 60; the others as a number. A member that has no effect is said once an hour
(\`unknown-member\`) and changes nothing else; names that begin with \`x-\` are free.

\`down/errors\` also says where a clock looks wrong, once an hour; nothing is rejected then.
\`clock-ahead\`: a \`ts\` is more than 10 s ahead of the service; the value is stored with it, and evaluated
as of its arrival. \`clock-back\`: all values of a sense were older than its newest for a quarter of an
hour, and went on as a clock does; they are evaluated again from the newest of them on. Values of one
message are evaluated in the order of their \`ts\`, whatever their order in it.

Sessions are not kept and nothing is retained: what a device is to know is sent each time it
subscribes. The same client identifier takes its own session over; a device has at most 4 connections.

Limits, unless the operator changed them: packets of 64 KiB (those to \`up/measurements\` may be given up to
256 KiB), a CONNECT of 4 KiB, 16 subscriptions a connection, 8 topic levels; on average 100 messages (1,000 at once after a pause) and 1,000
measurements and events a second, wrong ones included, beyond which reading slows down and nothing is dropped.
A payload has 20,000 of {, [ and , at most, texts aside, one over 64 KiB 12,000. A device may connect 120 times at once and
twice a second on average: what is beyond that is answered CONNACK 3.
`.trim();
