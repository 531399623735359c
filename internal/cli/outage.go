// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"time"
)

// patience is how long a gateway may be out of reach before a person is told. A restart of it is no news.
const patience = 3 * time.Second

// outage is a time in which nothing comes from the gateway. A person is told once of each.
type outage struct {
	tell  func(error)
	since time.Time
	told  bool
}

// onLoss has each outage told that lasts.
func (g *gateway) onLoss(tell func(error)) { g.outage.tell = tell }

// lost notes that the gateway was not reached.
func (o *outage) lost(now time.Time, err error) {
	if o.since.IsZero() {
		o.since = now
	}
	if !o.told && o.tell != nil && now.Sub(o.since) >= patience {
		o.told = true
		o.tell(err)
	}
}

// over notes that something has come.
func (o *outage) over() { o.since, o.told = time.Time{}, false }

// outOfReach tells why nothing is shown at the moment.
func (p *printer) outOfReach(err error) {
	p.note("the gateway is out of reach, and is asked again until it answers: %v", explained(err))
}
