import { config } from 'zod';

// Before any schema is made: it would try to compile itself, which the page's policy refuses.
config({ jitless: true });
