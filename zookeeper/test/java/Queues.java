import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBase;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;

/**
 * PATH LOCK_PATH|- consumes|produces; events item TEXT, and failed TEXT or held TEXT for those that it was told to fail,
 * or never to finish. `put TEXT` has one more argument where the queue needs it: an id, the epoch milliseconds when it is
 * due, or a priority.
 */
final class Queues implements Peer.Recipe {
  private interface Put {
    void put(String item, String more) throws Exception;
  }

  private interface PutMany {
    void put(MultiItem<String> items, String more) throws Exception;
  }

  private final AtomicInteger failures = new AtomicInteger();
  private final AtomicInteger holds = new AtomicInteger();
  private QueueBase<String> queue;
  private Put put;
  private PutMany putMany;

  private Queues() {}

  static Queues make(String kind, CuratorFramework client, String name, List<String> arguments) {
    Queues made = new Queues();
    QueueConsumer<String> consumer = arguments.get(2).equals("consumes") ? made.consumer(name) : null;
    QueueBuilder<String> builder = QueueBuilder.builder(client, consumer, new Text(), arguments.get(0));
    if (!arguments.get(1).equals("-")) builder = builder.lockPath(arguments.get(1));
    switch (kind) {
      case "idQueue":
        DistributedIdQueue<String> byId = builder.buildIdQueue();
        made.queue = byId;
        made.put = byId::put;
        break;
      case "delayQueue":
        DistributedDelayQueue<String> delayed = builder.buildDelayQueue();
        made.queue = delayed;
        made.put = (item, due) -> delayed.put(item, Long.parseLong(due));
        made.putMany = (items, due) -> delayed.putMulti(items, Long.parseLong(due));
        break;
      case "priorityQueue":
        DistributedPriorityQueue<String> ordered = builder.buildPriorityQueue(0);
        made.queue = ordered;
        made.put = (item, priority) -> ordered.put(item, Integer.parseInt(priority));
        made.putMany = (items, priority) -> ordered.putMulti(items, Integer.parseInt(priority));
        break;
      default:
        DistributedQueue<String> plain = builder.buildQueue();
        made.queue = plain;
        made.put = (item, none) -> plain.put(item);
        made.putMany = (items, none) -> plain.putMulti(items);
    }
    return made;
  }

  private QueueConsumer<String> consumer(String name) {
    return new QueueConsumer<String>() {
      @Override
      public void consumeMessage(String item) throws InterruptedException {
        if (holds.getAndUpdate((left) -> Math.max(0, left - 1)) > 0) {
          Peer.event(name, "held", item);
          new CountDownLatch(1).await();
        }
        if (failures.getAndUpdate((left) -> Math.max(0, left - 1)) > 0) {
          Peer.event(name, "failed", item);
          throw new IllegalStateException("told to fail");
        }
        Peer.event(name, "item", item);
      }

      @Override
      public void stateChanged(CuratorFramework any, ConnectionState state) {
        // the client's own event tells
      }
    };
  }

  @Override
  public List<String> call(String operation, List<String> arguments) throws Exception {
    String more = arguments.size() > 1 ? arguments.get(1) : "";
    switch (operation) {
      case "start":
        queue.start();
        return Peer.words();
      case "put":
        put.put(arguments.get(0), more);
        return Peer.words();
      case "putMany": // TEXT,TEXT,… in one node
        java.util.Iterator<String> items = List.of(arguments.get(0).split(",")).iterator();
        putMany.put(() -> items.hasNext() ? items.next() : null, more);
        return Peer.words();
      case "remove": // by id
        return Peer.words(((DistributedIdQueue<String>) queue).remove(arguments.get(0)));
      case "flush": // puts are sent in the background
        return Peer.words(queue.flushPuts(Long.parseLong(arguments.get(0)), TimeUnit.MILLISECONDS));
      case "fail": // so many of the next items
        failures.set(Integer.parseInt(arguments.get(0)));
        return Peer.words();
      case "hold": // so many of the next items
        holds.set(Integer.parseInt(arguments.get(0)));
        return Peer.words();
      case "close":
        queue.close();
        return Peer.words();
      default:
        throw Peer.unknown(operation);
    }
  }

  private static final class Text implements QueueSerializer<String> {
    @Override
    public byte[] serialize(String item) {
      return item.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String deserialize(byte[] bytes) {
      return new String(bytes, StandardCharsets.UTF_8);
    }
  }
}
