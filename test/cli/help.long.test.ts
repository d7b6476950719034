// The programs that `npm test` leaves out.
import './help.test.ts';
