// 1,000 random histories; npm run test:all has 200.
import './exactly.test.ts';
