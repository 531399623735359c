// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// patience is how long a server may be out of reach before that is reported: a restart takes less.
const patience = 3 * time.Second

// Outage is a time in which a server does not answer. Each is reported once.
type Outage struct {
	// Report gets the error of an outage.
	Report func(error)

	// server names the server; empty: the API server.
	server   string
	since    time.Time
	reported bool
}

// Tolerate takes how a request to the API server ended. It returns the error, or nil if the same request may succeed
// later.
func (o *Outage) Tolerate(err error) error {
	switch {
	case err == nil:
		o.over()
	case !isPassing(err):
		return err
	default:
		o.lost(time.Now(), err)
	}
	return nil
}

// isPassing reports whether an error is one of the connection or of a server in trouble, and no answer to the request.
func isPassing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

func (o *Outage) lost(now time.Time, err error) {
	if o.since.IsZero() {
		o.since = now
	}
	if !o.reported && now.Sub(o.since) >= patience {
		o.reported = true
		o.Report(fmt.Errorf("the %s is out of reach, and is asked again until it answers: %w",
			cmp.Or(o.server, "API server"), err))
	}
}

func (o *Outage) over() { o.since, o.reported = time.Time{}, false }
