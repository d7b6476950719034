// The cases that `npm test` leaves out.
import './bridge-status.test.ts';
