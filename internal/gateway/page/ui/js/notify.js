// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Notifications of the browser for chats that wait for people. Nothing asks for the permission but a press of the button.

import { byId, toast } from './dom.js';
import { clipped } from './text.js';
import { mark } from './words.js';

const KEY = 'parley.notify';

/** Whether somebody wants to be notified, and the browser allows it. */
export function notificationsEnabled() {
  try {
    return localStorage.getItem(KEY) === 'yes' && Notification.permission === 'granted';
  } catch {
    return false;
  }
}

/** Lets the button switch notifications on and off. */
export function setUpNotifications() {
  const at = byId('notify');
  at.hidden = !('Notification' in window);
  const show = () => { at.textContent = `Notifications: ${notificationsEnabled() ? 'on' : 'off'}`; };
  at.addEventListener('click', async () => {
    const on = !notificationsEnabled() && await Notification.requestPermission() === 'granted';
    if (!on && Notification.permission === 'denied') toast('The browser refuses notifications: allow them in its settings.', true);
    try {
      localStorage.setItem(KEY, on ? 'yes' : 'no');
    } catch {
      // Storage may be forbidden. Then there are none.
    }
    show();
  });
  show();
}

export class Notifier {
  /** @param {(chat: string) => void} open */
  constructor(open) {
    Object.assign(this, { open, known: null });
  }

  /** @param {Iterable<any>} chats as the list has them, once it is whole @param {string} current the chat that is shown */
  show(chats, current) {
    const waiting = [...chats].filter((chat) => mark(chat) === 'act');
    const now = new Map(waiting.map((chat) => [`${chat.uid}/${chat.since}`, chat]));
    if (this.known && notificationsEnabled()) {
      for (const [key, chat] of now) {
        if (this.known.has(key) || (chat.name === current && !document.hidden)) continue;
        this.#notify(chat, key);
      }
    }
    this.known = now;
  }

  #notify(chat, tag) {
    try {
      const shown = new Notification(`${clipped(chat.title || chat.name, 80)} waits for you`, { tag, icon: 'icon.svg' });
      shown.onclick = () => {
        window.focus();
        this.open(chat.name);
        shown.close();
      };
    } catch {
      // Some browsers of phones have none for pages.
    }
  }
}
