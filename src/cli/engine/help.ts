export const help = `The purpose engine alone: what a purpose makes of measurements, without a service.

Usage:
  npm run engine -- FILE… [options] < stream.ndjson
  npm run engine -- --vectors FOLDER [--json]
  npm run engine -- --answers FOLDER

The first one prints what fires and why, and where the device moves. A FILE has a purpose, a list of
purposes or a profile; several files are one profile. Standard input has a line for each measurement, as
a device sends it, or for a message of several:

  {"sId":"0x10","val":-9,"ts":1795420800000}
  [{"sId":"0x10","val":-9,"ts":1795420860000},{"sId":"0x10","val":-9,"ts":1795420920000}]

and, where that matters, when it arrived ("arrivedTs"), {"tick":{"at":…}} for time that passes, {"enter":
{"puId":1,"stId":2}} for a reported state, {"install":[…]} for another profile, {"clock":{"at":…}} for the
clock of arrivals, which was ahead and is set right. All times are those of the stream: no clock is read,
and what time alone completes (a tick) happens where it is due.

  --stream FILE     Read the measurements from a file.
  --installed TIME  When the profile becomes current (default: as the first line arrives).
  --until TIME      Let time go on after the last line.
  --explain         At the end, say what each cause of the live events waits for.
  --json            A line of JSON for each thing that happens, instead of text.

  A TIME is in milliseconds since 1970, or 2026-11-23T08:00:00Z.

  --vectors FOLDER  Check what another engine answers to the cases in test/vectors: the folder has its
                    answers in files of the same names. Says each difference, and its place.
  --answers FOLDER  Write what this engine answers to all of them, as an example.

  --help            This text.

What the lines mean, the form of answers and the rules are in test/vectors/README.md and docs/engine.md.
npm says what it runs on standard output; npm run --silent engine does not.

Exit status: 0 when all went well, 1 when an answer differs or the input is wrong, 2 when an option is.
`;
