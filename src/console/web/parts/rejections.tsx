import type { Rejection } from '../api/devices.ts';
import { t, tryText } from '../text/t.ts';
import { Ago } from './status.tsx';

/** What was refused: why, what to do about it, and what was sent, as text whatever it is. */
export function Rejections({ rejections }: { rejections: readonly Rejection[] }) {
  return (
    <ul class="rejections">
      {rejections.map(({ timestamp, reason, message, path, topic, payload }, place) => (
        <li key={`${timestamp}-${place}`}>
          <p class="rejection-what">
            <strong>{message}</strong>
            {path !== undefined && <code>{path}</code>}
            <Ago ts={timestamp} />
          </p>
          <Todo reason={reason} />
          <details>
            <summary>{t('device.sent')}</summary>
            <p class="fine">{topic}</p>
            <pre tabIndex={0}>{payload}</pre>
          </details>
        </li>
      ))}
    </ul>
  );
}

function Todo({ reason }: { reason: string }) {
  const text = tryText(`rejection.todo.${reason}`, '');
  return text === '' ? null : <p class="fine">{text}</p>;
}
