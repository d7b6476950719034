import { render } from 'preact';
import { App } from './app/app.tsx';
import { openSession } from './app/session.ts';
import { startTitle } from './app/shell.tsx';
import { startStream } from './app/stream.ts';
import { applyTheme, registerColors } from './app/preferences.tsx';
import { language, speak } from './text/t.ts';

registerColors();
applyTheme();
void openSession();
speak(language.value).then(
  () => {
    const root = document.getElementById('console');
    if (root) render(<App />, root);
    startTitle();
    startStream();
  },
  // The service went away meanwhile, and the browser does not ask again for a script that it did not get.
  () => setTimeout(() => location.reload(), 5_000),
);
