// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

func TestRefusedURLIsTriedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &urlModel{refused: cache.NewLRUExpireCache(maxRefused)}
		f := &urlFiles{files: []urlFile{{url: "https://a.test"}}, omitted: []int{0}}
		m.remember(f)
		<-time.After(refusedFor / 2)
		m.remember(f) // It was omitted, and not refused once more.
		if !m.isRefused("https://a.test") || m.isRefused("https://b.test") {
			t.Error("another URL is refused than the one that was")
		}
		<-time.After(refusedFor/2 + time.Second)
		if m.isRefused("https://a.test") {
			t.Error("it is never tried again")
		}
	})
}
