// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"testing"

	"parley.dev/parley/test/kit/browser"
)

// within holds if what the first selector finds is whole inside of what the second one finds.
const within = `(() => { const outer = document.querySelector(%[2]q).getBoundingClientRect();
	const inner = [...document.querySelectorAll(%[1]q)].map((e) => e.getBoundingClientRect());
	return inner.length > 0 && inner.every((box) => box.height > 0 && box.top >= outer.top - 1 && box.bottom <= outer.bottom + 1); })()`

func TestHeaderOfCodeIsWhole(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), assistant(1, text("```sh\nsh greet.sh\n```")), status("Waiting", "Answered", 2, nil))
	p := s.opened(t)
	p.Sees(".code .bar", "sh")
	for _, scheme := range []string{"dark", "light"} {
		p.Look(scheme, 1280, 720)
		pictured(p, "", "header of code "+scheme)
		if !browser.Eval[bool](p, fmt.Sprintf(within, ".code .bar > *", ".code .bar")) {
			t.Errorf("%s: the header of the code is cut", scheme)
		}
	}
}
