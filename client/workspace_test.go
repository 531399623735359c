// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/test/kit/check"
)

func TestSilentGatewayEndsACopyOfFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		n := asking(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&hanging{"half", r.Context()})}, nil
		})
		archive, err := OpenWorkspace(t.Context(), n, "c", "file")
		check.OK(t, err)
		<-time.After(10 * time.Minute) // Whoever reads it may take their time.
		text, err := io.ReadAll(archive)
		check.OK(t, archive.Close())
		took := time.Since(begun)
		if string(text) != "half" || !errors.Is(err, errSilent) || took != 10*time.Minute+maxSilence {
			t.Errorf("read %q within %s: %v", text, took, err)
		}
		begun = time.Now()
		err = PutWorkspaceFile(t.Context(), n, "c", "file", make([]byte, 2<<20), false)
		if took = time.Since(begun); err == nil || took != operationTimeout+2*perMiB {
			t.Errorf("wrote within %s: %v", took, err)
		}
	})
}
