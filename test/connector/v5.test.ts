// The connector's tests again, in MQTT 5. Those that load the machine: v5.long.test.ts.
import { repeatInV5 } from './repeat-in-v5.ts';

repeatInV5([
  'access',
  'account-backpressure',
  'accounts',
  'acknowledging',
  'connecting',
  'filters',
  'keep-alive',
  'large-packets',
  'limits',
  'memory-budget',
  'ordering',
  'pushing',
  'redelivery-qos2',
  'topics',
]);
