// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// stored is a gateway with a file, and how often it was asked for one.
func (c *talk) stored(content []byte) (file v1beta1.MessageFile, asked *atomic.Int32) {
	c.t.Helper()
	asked = &atomic.Int32{}
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write(content)
	}))
	c.t.Cleanup(gateway.Close)
	token := filepath.Join(c.t.TempDir(), "token")
	check.OK(c.t, os.WriteFile(token, []byte("secret"), 0o600))
	c.options.Sources = sources.New(sources.Options{Client: c.API, Now: time.Now,
		Gateway: &sources.Gateway{URL: gateway.URL, TokenFile: token, HTTP: gateway.Client()}})
	sum := sha256.Sum256(content)
	return v1beta1.MessageFile{Stored: &v1beta1.StoredFile{SHA256: hex.EncodeToString(sum[:]),
		Size: int64(len(content))}}, asked
}

func TestFilesAreReadOnceMemoryIsFree(t *testing.T) {
	hangs := modelserver.Script{Rules: []modelserver.Rule{
		{Reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}}}}}
	content := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 300<<10)...) // A pod reckons with 2400 KiB for it.
	first, second := newTalk(t, hangs), newTalk(t, hangs)
	var asked [2]*atomic.Int32
	for i, c := range []*talk{first, second} {
		var picture v1beta1.MessageFile
		picture, asked[i] = c.stored(content)
		c.show(file("a.png", "image/png", picture))
		c.options.PromptMemory = 3 << 20
		c.steps = New(c.options)
	}
	second.steps.prompts = first.steps.prompts // They are in one pod.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go first.perform(ctx, v1beta1.ActionGenerateAssistant)
	first.eventually("the first call is under way", func() bool { return first.Server.InFlight() == 1 })
	waiting, stop := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, ErrInterrupted)
	defer stop()
	check.Equal(t, "the second", v1beta1.OutcomeInterrupted,
		second.perform(waiting, v1beta1.ActionGenerateAssistant).Spec.Generation.Outcome)
	check.Equal(t, "requests for files", []int32{1, 0}, []int32{asked[0].Load(), asked[1].Load()})
	cancel()
	first.eventually("the first call has ended", func() bool { return first.Server.InFlight() == 0 })
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	go second.perform(ctx, v1beta1.ActionGenerateAssistant)
	second.eventually("the second call is under way", func() bool { return second.Server.InFlight() == 1 })
	check.Equal(t, "requests for files", 1, asked[1].Load())
}
