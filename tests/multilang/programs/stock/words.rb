# A spout and bolts on Storm's own adapter for Ruby, whose file storm.rb lies beside them.

require_relative 'storm'

class Sentences < Storm::Spout
  def open(conf, context)
    @waiting = conf['own.sentences'].dup
  end

  def nextTuple
    return if @waiting.empty?
    sentence = @waiting.shift
    ids = emit([sentence], :id => sentence)
    logInfo("#{sentence} goes to #{ids.length}")
  end

  def ack(id)
    logInfo("acked #{id}")
  end

  def fail(id)
    logWarn("failed #{id}")
    @waiting.push(id)
  end
end

class Split < Storm::Bolt
  def process(tup)
    sentence = tup.values[0]
    if sentence.include?('x') && !@failed
      @failed = true
      fail(tup)
      return
    end
    sentence.split.each do |word|
      ids = emit([word, word.length], :anchor => tup)
      emit([word, ids[0]], :stream => 'sent', :anchor => tup)
    end
    ack(tup)
  end
end

class Count < Storm::Bolt
  def prepare(conf, context)
    @counts = Hash.new(0)
    @task = context['taskid']
  end

  def process(tup)
    word = tup.values[0]
    @counts[word] += 1
    emit([word, @counts[word], @task, tup.component], :anchor => tup)
    ack(tup)
  end
end

Object.const_get(ARGV[0]).new.run
