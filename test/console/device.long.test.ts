// The tests that `npm test` leaves out.
import './device.test.ts';
