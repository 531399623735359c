// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

interface ChatReference {
  name?: string;
}

interface Owned {
  apiVersion?: string;
  kind?: string;
  /** A ChatDebugStep has no spec. */
  chatRef?: ChatReference;
  spec?: { chatRef?: ChatReference };
}

/** The chat that an object of parley.dev belongs to; undefined for every other object. */
export function chatOf(object?: Owned): string | undefined {
  if (!object?.apiVersion?.startsWith('parley.dev/')) {
    return undefined;
  }
  return (object.spec?.chatRef ?? object.chatRef)?.name;
}
