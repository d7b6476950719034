// Those of the connector's tests that load the machine, in MQTT 5.
import { repeatInV5 } from './repeat-in-v5.ts';

repeatInV5(['admission', 'fuzz', 'hostile', 'listeners', 'overload', 'refused-logins']);
