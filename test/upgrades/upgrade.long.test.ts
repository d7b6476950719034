// The cases that `npm test` leaves out.
import './upgrade.test.ts';
