// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
)

// mostGone is how many chats that are gone are remembered: more than have messages left at any moment.
const mostGone = 4096

// goneChats finds out which chats are gone, and asks the API server once for each: its messages go one by one. No UID
// comes again, so that nothing of what is remembered ever becomes wrong, and to forget it costs one request. It is
// remembered with the name that was asked for: a message may say of itself that it belongs to any UID.
type goneChats struct {
	begin   sync.Once
	chats   *lru.Cache
	flights singleflight.Group
}

// isGone reports whether the chat of that UID, which had this name, exists no longer.
func (g *goneChats) isGone(ctx context.Context, live client.Reader, name types.NamespacedName, uid string) (bool,
	error) {
	g.begin.Do(func() { g.chats = lru.New(mostGone) })
	key := name.String() + "/" + uid
	gone, err, _ := g.flights.Do(key, func() (any, error) {
		if _, known := g.chats.Get(key); known {
			return true, nil
		}
		var chat v1beta1.Chat
		err := live.Get(ctx, name, &chat)
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("reading chat %s: %w", name, err)
		}
		if err == nil && string(chat.UID) == uid {
			return false, nil
		}
		g.chats.Add(key, nil)
		return true, nil
	})
	return gone == true, err
}
