import type { SettingsInput } from '../src/config/settings.ts';
import { notifications } from './notifications.ts';

const settings: SettingsInput = {
  /**
   * Where devices connect. A device is given one of these when it registers, spread evenly; adding
   * one moves only its share. `npm start -- connector --id 2` runs the one with that id.
   * host null: PUBLIC_HOST; port null: the port this process really listens on for that protocol
   * ('mqtt', 'mqtts', 'ws' or 'wss'). kind 'http' takes what devices send below /devices/ of HTTP_PORT,
   * protocol 'http' (or 'https' behind a proxy); only devices that ask for http are given it. kind
   * 'bridge' serves devices of an external broker instead:
   * { kind: 'bridge', id: 3, name: 'emqx', protocol: 'mqtts', host: 'mqtt.example.com', port: 8883,
   *   broker: { url: 'mqtts://10.0.0.5:8883', passwordFile: '/run/secrets/b' } }
   */
  connectors: [
    { kind: 'mqtt', id: 1, name: 'connector-1', protocol: 'mqtt', host: null, port: null },
    { kind: 'http', id: 2, name: 'connector-http', protocol: 'http', host: null, port: null },
  ],

  http: {
    /**
     * Addresses or networks ('10.0.0.0/8') of proxies whose X-Forwarded-For is believed. Behind one that
     * is not named here all clients have its address, also where logins and registrations are counted.
     */
    trustedProxies: [],
    /** Origins whose pages may call, and be devices ('https://dashboard.example.com'); '*' for any. */
    corsOrigins: [],
    /** Largest body of a request; a larger one is answered 413. Without a login it is 64 KiB at most. */
    bodyLimitBytes: 1_048_576,
    /** Time a client has to send its headers, and all of its request. */
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 30_000,
    /**
     * Connections open at once, of all clients and of one address (IPv6: a /64; not of trustedProxies).
     * One more of an address is closed unread; one more of all has an idle one closed (docs/memory.md, "Open
     * files"). A WebSocket at /mqtt counts among MQTT's instead.
     */
    connections: 20_000,
    connectionsPerAddress: 2_000,
  },

  accounts: {
    /** false: POST /v2/accounts answers 403, and accounts come from `npm run account -- create`. */
    openRegistration: true,
    /** Registrations from one address after which further ones must wait (429 with Retry-After). */
    registrationsPerAddress: { attempts: 100, windowSeconds: 3_600 },
    /** Failed logins after which further ones must wait (429 with Retry-After). */
    failedLogins: {
      /** For one account from one address. */
      perAccount: { attempts: 10, windowSeconds: 300 },
      /** From one address, whatever the account. */
      perAddress: { attempts: 50, windowSeconds: 300 },
    },
  },

  /** What one device may do, over HTTP too. Beyond a rate reading slows down; nothing is dropped. */
  mqtt: {
    /** Largest MQTT packet; a larger one closes the connection. */
    maxPacketBytes: 65_536,
    /**
     * Largest PUBLISH to up/measurements, and largest body of measurements over HTTP; 262,144 at most.
     * null: maxPacketBytes, which also holds where it is more, over WebSocket and through a bridge. A message
     * has at most 1,000 measurements all the same.
     */
    maxMeasurementPacketBytes: null,
    /** Largest CONNECT packet. */
    maxConnectBytes: 4_096,
    /** Time a new connection has for its CONNECT. */
    connectTimeoutMs: 10_000,
    /** A keep-alive of 0, or above this, is taken as this. */
    maxKeepaliveSeconds: 3_600,
    /** One more closes the device's oldest. */
    maxConnectionsPerDevice: 4,
    /** Subscriptions of one connection; a SUBSCRIBE longer than so many of 256 bytes closes it. */
    maxSubscriptions: 16,
    /** Levels of a topic or filter. */
    maxTopicLevels: 8,
    /** Messages a device may send: on average, and at once after a pause. */
    messagesPerSecond: 100,
    messagesBurst: 1_000,
    /** Measurements in them, on average. */
    measurementsPerSecond: 1_000,
    /**
     * While nobody else wants the machine, a device may send more than these, over MQTT or HTTP: up to 5 million
     * measurements or messages beyond them in a day. So it gets in quickly what it kept while it was away.
     */
    catchUp: true,
    /** New connections this process accepts. */
    connectsPerSecond: 2_000,
    /**
     * Of one address (IPv6: a /64), or of all devices behind a proxy that trustedProxies lacks:
     * connections that are read and not let in yet; further ones that wait unread for their turn (one
     * more is closed); refused logins a second, after which all of them wait.
     */
    connectingPerAddress: 50,
    waitingPerAddress: 2_000,
    refusedLoginsPerSecond: 200,
    /** How often one device may connect: on average, and at once. Beyond it CONNACK 3. */
    reconnectsPerSecond: 2,
    reconnectsBurst: 120,
    /** A message that cannot be stored for this long closes its connection, unacknowledged. */
    storeTimeoutMs: 10_000,
    /**
     * Addresses or networks of proxies in front of MQTT. What they send begins with the PROXY
     * protocol (HAProxy's send-proxy or send-proxy-v2), or is not let in.
     */
    trustedProxies: [],
  },

  ingest: {
    /** A `ts` further ahead of the service's clock than this is rejected. */
    maxAheadMs: 300_000,
    /** Of events whose measurements were older than this on arrival nobody is told; they are recorded. */
    ringMaxAgeMs: 900_000,
  },

  alarms: {
    /** An alarm of an event that a device reported closes so long after the newest report. */
    reportedForMs: 3_600_000,
  },

  /** The web console below /console/, where `/` leads; false: nothing of it is built or served. */
  console: { enabled: true },

  /**
   * What one account may have and do. Days are days of UTC. `npm run account -- quota <email> <name> <value>` changes one for
   * one account; `GET /v2/accounts/usage` tells it what it uses. What is stored beyond a quota, or was
   * before it was lowered, goes on working: only additions are refused.
   */
  quotas: {
    /** Devices of the account, and how many it may register a day (UTC), removed ones included. */
    devices: 10_000,
    devicesPerDay: 20_000,
    /** Stored purposes, and what they take together. */
    purposes: 1_000,
    purposeBytes: 33_554_432,
    /** Installed profiles that a device still has; alike ones count once. What they take together. */
    profiles: 1_000,
    profileBytesTotal: 67_108_864,
    /** Senses, and modules, of one device. */
    sensesPerDevice: 1_024,
    /** Characters of a stored name (device, module, sense, purpose, state, event), and of other texts. */
    nameLength: 200,
    textLength: 1_024,
    /** Causes that can read one sense at once, in any state of a profile; looked at when it is installed. */
    causesPerMeasurement: 256,
    /** Of one installed profile, and of what the engine can come to keep of a device that runs it. */
    profileBytes: 524_288,
    evidenceBytes: 65_536,
    /** REST requests with a token, in each process: on average, and at once after a pause. */
    requestsPerSecond: 200,
    requestsBurst: 2_000,
    /** MQTT connections of its devices, and waiting polls, in one process. Beyond: CONNACK 3, and 503. */
    connections: 10_000,
    /**
     * Sense events recorded in a second on average, and ten times as many at once, in each process. Beyond
     * it the account's devices have to wait. At most ten times as many are recorded of one message.
     */
    eventsPerSecond: 1_000,
    /**
     * Measurements, and reported events, read of the account's devices, in each process and only
     * while messages of other accounts wait there. Beyond it they wait unread; nothing is dropped.
     */
    measurementsPerSecond: 20_000,
    /**
     * Sense events recorded on one day (UTC). Further ones are not recorded: devices move, push and SMS
     * go out, and a row a minute among the device's rejections says so.
     */
    eventsPerDay: 5_000_000,
    /**
     * What the history takes, by estimate, and purposes and profiles. Beyond it nothing that the account's
     * devices send is taken: it waits, unacknowledged.
     */
    storedBytes: 21_474_836_480,
    /** Logins that live; one more ends one: first one never used, then the least recently used. */
    sessions: 50,
    /** Streams of events, alarms and measurements open at once, in one process. */
    streams: 20,
    /** API keys. */
    keys: 50,
    /** Jobs on many devices that are under way at once. */
    jobs: 2,
    /** Idempotency-Keys of the last 24 hours that are remembered, of 16 MiB together; then the oldest are forgotten. */
    idempotencyKeys: 10_000,
    /**
     * Queries that are answered in more than one piece, at once in one process (of all accounts four);
     * others wait for ten seconds at most, then 429.
     */
    exports: 2,
    /** Imports of measurements under way in one process; others wait for ten seconds at most, then 429. */
    imports: 1,
    /** Logins a minute, right and wrong ones, of one account from one address (429 beyond it). */
    loginsPerAccount: 60,
    /** The same from one address, whatever the account; not to be changed for one account. */
    loginsPerAddress: 300,
    /** Of what is wrong with one message so much is kept one by one; of the rest, how much it is. */
    rejectionsPerMessage: 10,
    /** Rejections kept of a device beside the newest 1,000, in bytes of their texts. */
    rejectionBytesPerDevice: 1_048_576,
    /** E-mail addresses and webhooks together. */
    contacts: 50,
    /** Push tokens that sessions added one by one; those of Update Account are 100 at most besides. */
    pushTokens: 100,
    /** Mail and push, and how many of them one recipient gets. */
    messagesPerDay: 1_000,
    messagesPerRecipient: 200,
    webhooksPerDay: 10_000,
    smsPerDay: 20,
    /** SMS to one telephone number, and of the whole installation, whichever accounts they are of. */
    smsPerNumber: 20,
    smsPerInstallation: 1_000,
    /**
     * Addresses that are asked for confirmation, which may be strangers': from one network (an IPv4 address, an IPv6
     * /64), and of the whole installation. An account whose own address is not confirmed may ask five, and all such
     * accounts together half of the last.
     */
    confirmationsPerNetwork: 100,
    confirmationsPerInstallation: 1_000,
  },

  /**
   * Laid over `quotas` where `accounts.openRegistration` is false: whoever has an account there was given it, and
   * a fleet of one account is not to be stopped by what keeps strangers apart. Yours in `quotas` go before these.
   * Rates, sizes of one thing and SMS stay.
   */
  quotasWhereClosed: {
    devices: 1_000_000,
    devicesPerDay: 1_000_000,
    purposes: 100_000,
    purposeBytes: 1_073_741_824,
    profiles: 100_000,
    profileBytesTotal: 1_073_741_824,
    connections: 1_000_000,
    eventsPerDay: 1_000_000_000,
    /** A pebibyte: what the disk holds. */
    storedBytes: 1_125_899_906_842_624,
    keys: 1_000,
    contacts: 500,
    messagesPerDay: 10_000,
    webhooksPerDay: 1_000_000,
  },

  /** How long the entries of accounts' audit trails are kept; the newest 2,000 of each kind at most. */
  audit: { days: 90 },
  /**
   * What one process holds in memory (docs/memory.md). The bounds hold for a machine that
   * has what V8 may take: its heap limit, which `node --max-old-space-size` sets.
   */
  memory: {
    /**
     * What is remembered of devices: compiled profiles, alike ones of an account once, and evidence.
     * Beyond it the account that has most is read anew. null: a quarter of the heap limit.
     */
    deviceBytes: null,
    /** Requests from their bodies to their answers; further ones wait, then 503. null: an eighth. */
    requestBytes: null,
    /**
     * The last line of defence: with more than this part of the heap limit in use, requests get 503
     * with Retry-After and devices are not read, until less than that part is.
     */
    comeLaterAt: 0.85,
    goOnAt: 0.7,
  },

  /** How long the history is kept. */
  retention: { eventsDays: 365, measurementsDays: 90 },

  database: {
    /**
     * Connections this process may open to the database for what requests and the service itself do. A fifth is kept
     * for logins, sessions, probes and the service; of the others one account has a quarter at most.
     */
    maxConnections: 20,
    /** Where the database is away at the start: how long it is tried again before the process ends. 0: not at all. */
    waitAtStartMs: 60_000,
    /** Time to open one, or to get one of that fifth, before the answer is "unavailable". */
    connectTimeoutMs: 1_500,
    /** Time one statement may take, and may wait before for its turn. */
    statementTimeoutMs: 10_000,
  },

  notifications,
};

export default settings;
