// Row blocks are started in order and added in order, so a thread only ever waits for earlier blocks.
#include "core/gram/ordered_pass.hpp"

#include <algorithm>
#include <cstdint>

#include "core/gram/add_sums.hpp"
#include "core/gram/multiply.hpp"
#include "core/gram/pack.hpp"
#include "core/gram/plan.hpp"
#include "core/threads.hpp"
#include "core/wait.hpp"

namespace bpls::gram_detail {
namespace {

// Rows of the result that a thread adds up at a time when all threads share the result.
constexpr std::size_t rows_to_add = 64;

// The state of a thread.
struct Worker {
    Worker(const ConstMatrix& A, const std::vector<ProductTask>& tasks, std::size_t bytes)
        : nonzero_of_A(A, tasks.front().left.of_A + tasks.front().right.of_A > 0),
          nonzero(tasks.size()),
          scratch(bytes, kernels::integer_block_rows) {
        for (NonzeroSides& sides : nonzero) {
            sides.left.reserve(nonzero_of_A.most_runs() + 1);
            sides.right.reserve(nonzero_of_A.most_runs() + 1);
        }
    }

    NonzeroColumnSearch nonzero_of_A;
    std::vector<NonzeroSides> nonzero;  // by task
    ThreadScratch<unsigned char, NonzeroStepList> scratch;
};

// The two steps for an item of a plan.
class Pass {
 public:
    Pass(const std::vector<ProductTask>& tasks, const Plan& plan) noexcept
        : tasks_(tasks), plan_(plan) {}

    // Sums the item's rows into the worker's scratch memory.
    void sum(std::size_t item, Worker& worker) const noexcept {
        const Group& group = plan_.groups[plan_.group_of(item)];
        const Range rows = plan_.rows_of(item);
        const Runs& nonzero_of_A = worker.nonzero_of_A.among(rows);
        for (std::size_t task = 0; task < tasks_.size(); ++task) {
            tasks_[task].left.find_runs(nonzero_of_A, worker.nonzero[task].left);
            tasks_[task].right.find_runs(nonzero_of_A, worker.nonzero[task].right);
        }
        each_block(group, worker, [](const PartialSums& sums) noexcept { start(sums); });
        const std::size_t chunk = chunk_rows(group);
        for (std::size_t row = rows.begin; row < rows.end; row += chunk) {
            const std::size_t count = std::min(chunk, rows.end - row);
            each_block(group, worker, [&](const PartialSums& sums) noexcept {
                const std::size_t step = sums.block.chunk_rows();
                for (std::size_t done = 0; done < count; done += step)
                    add_rows(sums, row + done, std::min(step, count - done),
                             worker.scratch.nonzero());
            });
        }
    }

    // Adds the sums of an item to some rows of the result.
    void add(std::size_t item, Worker& worker, Range rows) const noexcept {
        each_block(plan_.groups[plan_.group_of(item)], worker,
                   [&](const PartialSums& sums) noexcept { add_sums(sums, rows); });
    }

 private:
    template <class F>
    static void each_block(const Group& group, Worker& worker, F&& action) noexcept {
        unsigned char* scratch = worker.scratch.data();
        for (const ResultBlock& block : group) {
            action(PartialSums{block, worker.nonzero[block.task_index], scratch});
            scratch += block.scratch_bytes();
        }
    }

    const std::vector<ProductTask>& tasks_;
    const Plan& plan_;
};

// For at most one item per thread: once all sums are computed, all threads add them up.
void sum_then_add(const Pass& pass, const Plan& plan, std::vector<Worker>& workers,
                  int all_threads) {
    const std::size_t items = plan.items();
    parallel_for(static_cast<int>(workers.size()), items,
                 [&](std::size_t item, int) noexcept { pass.sum(item, workers[item]); });
    parallel_for(all_threads, (plan.result_rows + rows_to_add - 1) / rows_to_add,
                 [&](std::size_t block, int) noexcept {
                     const Range rows{block * rows_to_add, (block + 1) * rows_to_add};
                     for (std::size_t item = 0; item < items; ++item)
                         pass.add(item, workers[item], rows);
                 });
}

// The row blocks of a group are added in order: a thread waits for those before its own.
void sum_and_add_in_turn(const Pass& pass, const Plan& plan, std::vector<Worker>& workers) {
    std::vector<Signal> turns(plan.groups.size());  // row blocks that are added, by group
    parallel_for(workers, plan.items(), [&](std::size_t item, Worker& worker) noexcept {
        const auto row_block = static_cast<std::uint32_t>(plan.row_block_of(item));
        Signal& turn = turns[plan.group_of(item)];
        pass.sum(item, worker);
        turn.wait_until([&] { return turn.value() == row_block; });
        pass.add(item, worker, {0, plan.result_rows});
        turn.set(row_block + 1);
    });
}

}  // namespace

void ordered_pass(const ConstMatrix& A, const std::vector<ProductTask>& tasks, int n_threads) {
    const Plan plan(A, tasks, threads_for_call(n_threads));
    const int all_threads = threads_for_work(n_threads, plan.multiply_adds);
    auto workers = make_workers<Worker>(all_threads, plan.items(), A, tasks, plan.scratch_bytes);
    const Pass pass(tasks, plan);
    if (workers.size() > 1 && plan.items() <= workers.size())
        sum_then_add(pass, plan, workers, all_threads);
    else
        sum_and_add_in_turn(pass, plan, workers);
}

}  // namespace bpls::gram_detail
