import { render } from 'preact';
import { App } from './app/app.tsx';
import { openSession } from './app/session.ts';
import { startStream } from './app/stream.ts';
import { applyTheme } from './app/theme.ts';

applyTheme();
const root = document.getElementById('console');
if (root) render(<App />, root);
void openSession();
startStream();
