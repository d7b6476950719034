/** Where the service is, and what the noisy account comes from. */
export type Target = {
  url: string;
  mqttPort: number;
  databaseUrl: string;
  receiverPort: number;
  /** An address of 127.0.0.0/8 that nobody else uses: limits by address are not the others' limits. */
  address: string;
  seconds: number;
};
