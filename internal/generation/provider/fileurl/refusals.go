// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// refusedFor is how long a provider is not handed a URL again that it has refused: each step of a turn has it.
	refusedFor = 10 * time.Minute
	// maxRefusals is how many are remembered, far more than the chats of a pod have.
	maxRefusals = 4096
)

// refusals are the URLs that a provider has refused of late.
type refusals struct{ urls *cache.LRUExpireCache }

func newRefusals() refusals { return refusals{cache.NewLRUExpireCache(maxRefusals)} }

func (r refusals) has(url string) bool {
	_, refused := r.urls.Get(url)
	return refused
}

func (r refusals) add(urls []string) {
	for _, url := range urls {
		r.urls.Add(url, nil, refusedFor)
	}
}
