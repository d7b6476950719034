// The cases that `npm test` leaves out.
import './refused.test.ts';
