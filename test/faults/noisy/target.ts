/** Where the service is, and where the noisy account connects from. */
export type Target = {
  url: string;
  mqttPort: number;
  databaseUrl: string;
  receiverPort: number;
  /** An address of 127.0.0.0/8 that nobody else uses, so that limits by address do not affect the others. */
  address: string;
  seconds: number;
};
