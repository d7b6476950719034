// The cases that `npm test` leaves out.
import './profiles.test.ts';
