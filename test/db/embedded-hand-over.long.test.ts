// The cases that `npm test` omits.
import './embedded-hand-over.test.ts';
