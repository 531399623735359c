// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/shard"
)

// elsewhere is a cache of the chats of other shards that are at work: the limits for all namespaces together count
// them, too. The API server selects them, and nothing is kept of them but what they mean for those limits.
type elsewhere struct{ cache.Cache }

// GetCache has the manager start the cache before the controllers, and on replicas that do not lead, too.
func (e elsewhere) GetCache() cache.Cache { return e.Cache }

// atWork selects the chats that may generate, or wait for that.
var atWork = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(v1beta1.ChatWaiting)),
	fields.OneTermNotEqualSelector("status.phase", string(v1beta1.ChatRequiresAction)),
	fields.OneTermNotEqualSelector("status.phase", string(v1beta1.ChatError)),
)

// chatsElsewhere adds a cache of the other shards' chats to the manager; nil: there is no other shard.
func chatsElsewhere(mgr ctrl.Manager, s shard.Scope) (cache.Cache, error) {
	if s.IsAll() || s.IsLimited() && len(s.Elsewhere()) == 0 {
		return nil, nil //nolint:nilnil // There is nothing to read.
	}
	chats, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		NewInformer: index.Informers(func(namespace string) bool { return !s.Owns(namespace) }),
		ByObject: map[client.Object]cache.ByObject{
			&v1beta1.Chat{}: {Field: atWork, Transform: index.StripToSlot, UnsafeDisableDeepCopy: new(true),
				Namespaces: configs(s.Elsewhere())},
		},
	})
	if err == nil {
		err = mgr.Add(elsewhere{chats})
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the cache of other shards' chats: %w", err)
	}
	return chats, nil
}
