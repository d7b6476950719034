// The cases that `npm test` leaves out.
import './embedded-hand-over.test.ts';
