// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crash proves that the manager may fail at any write, or die there, and lag behind the API server, without
// anybody being able to tell from the outcome.
//
// A scenario says what a user does and what the model answers. It is run once with nothing going wrong, which yields
// the writes of the manager and the end state. Then it is run again for each of these writes and each thing that can go
// wrong with it (disturbances_test.go), with watches that lag, and with two managers at once. Each run has a namespace
// and a manager of its own and must come to the same end state, must keep the invariants (invariants_test.go), and must
// then be quiet. The API server and etcd are real; the generation pods' part is played here (generator_test.go), by the
// same rules: one answer for each attempt, named after its fence.
//
// To add a scenario, add a value to one of the tables (going_on_test.go, steering_test.go):
//
//	{name: "an interrupted turn keeps what was said", does: []step{
//		prompts("hello"), awaits(beingAnswered), fromHere(), annotates(v1beta1.AnnotationInterrupt, "1"),
//		awaits(phase(v1beta1.ChatInterrupting)), answers(chattest.Says("Half a"), chattest.Interrupted()),
//	}},
//
// Steps (steps_test.go) are done in order. A step that depends on what the manager has done must wait for it with
// awaits, since a manager that fails takes its time: what a scenario does must not depend on how fast the manager is. A
// new kind of step is a function that returns a step, a new thing to wait for one that returns a condition
// (conditions_test.go). A scenario that does not end Waiting or in Error says in ends what its end looks like. A
// scenario that begins as others do says with fromHere where it begins to differ, which saves the runs for the writes
// before. New fields of a status are compared without further ado; those that differ between runs that end the same are
// named in endstate_test.go.
//
// To run one case again, use the name that the failure shows:
//
//	go test -tags grpcnotrace ./test/crash \
//	  -run 'Scenario/a_prompt_is_answered/update_chats/status_c_2/is_applied_and_the_process_dies'
package crash

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/test/kit/testcluster"
)

// parallel is how many runs there are at once. They mostly wait.
const parallel = "32"

var (
	cluster *testcluster.Cluster
	mapper  meta.RESTMapper
	watched *observer
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	// The default is the number of processors; the command line still has the last word.
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	os.Exit(testcluster.Run(m, &cluster, func(ctx context.Context) (end func(), err error) {
		mapper = cluster.Client.RESTMapper()
		return observe(ctx)
	}))
}
