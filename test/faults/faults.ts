import type { Fault } from './fault.ts';
import {
  connectionsTerminated,
  databaseAway,
  databaseKilled,
  databaseRestarted,
  databaseStopped,
  networkCut,
  networkStalled,
} from './kinds/database.ts';
import { acknowledgementLost, reconnectStorm } from './kinds/devices.ts';
import { diskFull } from './kinds/disk-full.ts';
import { failover } from './kinds/failover.ts';
import { migratedUnder } from './kinds/migrated.ts';
import { poison, wrongClocks } from './kinds/payloads.ts';
import { redisKilled, redisSlow } from './kinds/redis.ts';
import { serviceKilled, serviceTerminated } from './kinds/service-killed.ts';
import { soak } from './kinds/soak.ts';
import { clockBack, clockForward, clockLeap, frozen } from './kinds/time.ts';

/** All faults. */
export const faults: Fault[] = [
  serviceKilled,
  serviceTerminated,
  migratedUnder,
  databaseKilled,
  databaseRestarted,
  connectionsTerminated,
  databaseStopped,
  databaseAway,
  networkCut,
  networkStalled,
  failover,
  diskFull,
  redisKilled,
  redisSlow,
  acknowledgementLost,
  wrongClocks,
  poison,
  reconnectStorm,
  soak,
  frozen,
  clockBack,
  clockLeap,
  // Last, because the clock stays ahead.
  clockForward,
];
